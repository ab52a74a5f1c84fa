"""The playground: a page on this machine in which knowledge is written, looked at and tried."""
