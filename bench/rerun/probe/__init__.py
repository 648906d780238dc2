"""The probe: it runs the cells of an agent, judges them, and proves or bounds what it says."""
