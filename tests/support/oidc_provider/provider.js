// A real provider of OpenID Connect on a port of this machine, until it is ended.
// Told by JSON: port, skew (seconds that its clock is ahead), people (groups by name), clients (as
// oidc-provider has them), jwks (its keys, private; without: those that it has for trying).
import { createServer } from "node:http";
import Provider from "oidc-provider";

const told = JSON.parse(process.argv[2]);
const now = Date.now.bind(Date);
Date.now = () => now() + 1000 * told.skew;

const issuer = `http://127.0.0.1:${told.port}`;
const claimsOf = (sub) => ({ sub, email: `${sub}@example.org`, groups: told.people[sub] ?? [] });

const provider = new Provider(issuer, {
  clients: told.clients,
  ...(told.jwks ? { jwks: told.jwks } : {}),
  cookies: { keys: ["of a test"] },
  claims: { openid: ["sub"], email: ["email", "groups"], profile: [] },
  scopes: ["openid", "profile", "email"],
  findAccount: (_context, sub) => ({ accountId: sub, claims: () => claimsOf(sub) }),
  pkce: { required: () => true },
  ttl: { AccessToken: 600, ClientCredentials: 600, IdToken: 600 },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (_context, _client, oneOf) => oneOf,
      getResourceServerInfo: (_context, resource) => ({
        scope: "read",
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
      }),
      useGrantedResource: () => false,
    },
  },
  extraTokenClaims: (_context, token) => ({
    groups: told.people[token.accountId ?? token.clientId] ?? [],
  }),
});

createServer(provider.callback()).listen(told.port, "127.0.0.1", () => console.log("ready"));
