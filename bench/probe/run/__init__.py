"""The probe. It runs the cells of an agent, judges them, and repeats runs so that its conclusion is proved or is a bound."""
