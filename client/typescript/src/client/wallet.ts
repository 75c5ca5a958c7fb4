/**
 * The wallet: tokens that a device asked for and has, as its state keeps them, in base64, by stream and
 * epoch. As client/hubbub/client/state/wallet.py; a report's own token is kept with the report.
 */

/** A token's nonce, the issuer's function of it, and by which of the issuer's keys. */
export type Token = readonly [nonce: string, output: string, key: string];

/**
 * pending: inputs for which no answer was kept, each with its blind and what the issuer sees, whichever
 * key it has by then. free: that no report has, by the issuer's key besides; an empty list where there
 * are none, or the issuer gives no more.
 */
export interface Wallet {
  readonly pending: Readonly<Record<string, readonly (readonly [string, string, string])[]>>;
  readonly free: Readonly<Record<string, readonly Token[]>>;
}

/** One of a device that has asked for nothing. */
export const EMPTY: Wallet = { pending: {}, free: {} };
