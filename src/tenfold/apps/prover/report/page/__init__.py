"""Page: the parts of a run's page: its look, its plots and tables, and the queries one by one."""
