"""Access over HTTP: tokens, logins at an identity provider, rights by group, the audit trail."""
