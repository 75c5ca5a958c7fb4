/** The ways to a bundle's shuffler and to its issuer, where they are more than one address. */
import type { Bundle } from "../catalog/bundle.js";
import type { Post, Transport } from "../client/transport.js";
import { askingIssuer, type Account, type AskIssuer } from "./issuing.js";
import { relayTransport } from "./relay.js";

/** What an app's options name of them. */
export interface Addresses {
  readonly shuffler?: string;
  readonly relay?: string;
  readonly account?: Account;
}

/**
 * The transport through a relay, and what asks the issuer; each where there is one.
 *
 * @throws BadParameter an address is none, or the account or the gateway's key is missing.
 */
export function waysOf(
  bundle: Bundle,
  { relay, shuffler = bundle.shuffler, account }: Addresses,
  post: Post,
): { transport?: Transport; ask?: AskIssuer } {
  return {
    ...(relay !== undefined && {
      transport: relayTransport(relay, bundle.gateway, shuffler, post),
    }),
    ...(bundle.tokens && { ask: askingIssuer(bundle.tokens, account, post) }),
  };
}
