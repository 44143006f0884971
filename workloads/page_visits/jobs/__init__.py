"""Jobs that count page visits: in tumbling windows, sliding windows and sessions."""
