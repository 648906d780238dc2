"""`bench probe` on agents of many frameworks whose tools are functions of their own process."""
