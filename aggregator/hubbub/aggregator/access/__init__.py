"""Who may ask over HTTP, and what: tokens, a provider's logins, rights by group, the audit."""
