/** What is left of a ledger once a person has all forgotten: the sums that limits need. */
import { YEAR_DAYS } from "../catalog/caps.js";
import { DAY_SECONDS } from "../catalog/epochs.js";
import { newDevice, type Device } from "./device.js";
import { DISABLED, type State } from "./state.js";
import { OPENED, raised, type Accounts, type Numbers } from "./account.js";

/**
 * Forgets the secret, and all that was answered or waits; of what was spent the sums stay.
 *
 * @throws StateUnusable nothing is forgotten.
 */
export async function forget(state: State): Promise<Device> {
  const now = state.now();
  const { device, result: dropped } = await state.step(
    async (rows, device) => {
      const waiting = await rows.waiting();
      await rows.clear();
      const { commits, trust, notice } = device;
      const accounts = withoutHistory(device.accounts, now);
      const lasting = { state: device.state, commits, trust, notice, accounts };
      const fresh = { ...newDevice(), ...lasting, consent: { ...device.consent, since: now } };
      return [fresh, waiting.map(({ stream }) => ({ stream, reason: DISABLED }))];
    },
    { insists: true },
  );
  state.diagnostics.drop(dropped);
  return device;
}

const SPANS = [0, 1, 31, YEAR_DAYS];

/**
 * What limits need of accounts once a person has all forgotten: neither epochs, tags nor days.
 *
 * PRIVACY: what was sent stays known to whoever kept it, so what it may have said stays spent. now: in
 * seconds.
 */
function withoutHistory(accounts: Accounts, now: number): Accounts {
  const charged = Object.entries(accounts).filter(([, account]) => account.spent);
  return Object.fromEntries(
    charged.map(([name, { spent, central, days, crowds }]) => {
      const sums = { days: bySpan(days, now), crowds: bySpan(crowds, now) };
      return [name, { ...OPENED, spent, central, ...sums }];
    }),
  );
}

/** One sum for each span of a cap, on the newest day that it may be of. */
function bySpan(days: Numbers, now: number): Numbers {
  const today = Math.floor(now / DAY_SECONDS);
  const latest = Math.max(today, ...Object.keys(days).map(Number));
  let losses: Numbers = {};
  for (const [day, loss] of Object.entries(days)) {
    const age = Math.max(0, ...SPANS.filter((span) => span <= today - Number(day)));
    // Of a clock that was ahead, or an epoch that ends in days to come.
    losses = raised(losses, age ? Math.max(0, today - age) : latest, loss);
  }
  return losses;
}
