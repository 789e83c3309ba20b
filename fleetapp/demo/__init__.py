"""``fleetapp demo``: a whole fleet on one PC, made for a minute and gone without a trace."""
