"""Who may do what, and how much of it: grants, quotas, accounts, failed logins."""
