"""When this PC works for the fleet: rules that decide, a monitor that looks, pauses that last."""
