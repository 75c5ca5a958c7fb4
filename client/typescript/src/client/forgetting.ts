/** Forgetting: what remains of a ledger afterwards are the sums that limits need. */
import { YEAR_DAYS } from "../catalog/caps.js";
import { DAY_SECONDS } from "../catalog/epochs.js";
import { newDevice, type Device } from "./device.js";
import { DISABLED, type State } from "./state.js";
import { NEW_ACCOUNT, raised, type Accounts, type Numbers } from "./account.js";

/**
 * Deletes the secret, all records of answers and the waiting reports; the sums of the spent budget
 * stay.
 *
 * @throws StateUnusable nothing is forgotten.
 */
export async function forget(state: State): Promise<Device> {
  const { device, result: dropped } = await state.step(
    async (rows, device) => {
      const waiting = await rows.waiting();
      await rows.clear();
      const { commits, trust, notice } = device;
      const since = Math.max(device.consent.since, Math.min(state.now(), LATEST) || 0);
      const accounts = withoutHistory(device.accounts, since);
      const lasting = { state: device.state, commits, trust, notice, accounts };
      const forgottenDevice = {
        ...newDevice(),
        ...lasting,
        consent: { ...device.consent, since },
      };
      return [forgottenDevice, waiting.map(({ stream }) => ({ stream, reason: DISABLED }))];
    },
    { insists: true },
  );
  state.diagnostics.drop(dropped);
  return device;
}

const SPANS = [0, 1, 31, YEAR_DAYS];
const LATEST = 2.5e11; // the year 9892, as client/hubbub/client/state/consent.py

/**
 * The sums of the accounts that limits need, without epochs, tags and days.
 *
 * PRIVACY: receivers may have stored what was sent, so its loss stays spent. now: in seconds.
 */
function withoutHistory(accounts: Accounts, now: number): Accounts {
  const charged = Object.entries(accounts).filter(([, account]) => account.spent);
  return Object.fromEntries(
    charged.map(([name, { spent, central, days, crowds, epochs, floor }]) => {
      const sums = { days: bySpan(days, now), crowds: bySpan(crowds, now) };
      // The clock may have been set back.
      const isLater = Object.keys(days).some((day) => Number(day) > Math.floor(now / DAY_SECONDS));
      const kept = isLater ? Math.max(floor, ...Object.keys(epochs).map(Number)) : -1;
      return [name, { ...NEW_ACCOUNT, spent, central, floor: kept, ...sums }];
    }),
  );
}

/** One sum for each span of a cap, on the newest day to which it may belong. */
function bySpan(days: Numbers, now: number): Numbers {
  const today = Math.floor(now / DAY_SECONDS);
  const latest = Math.max(today, ...Object.keys(days).map(Number));
  let losses: Numbers = {};
  for (const [day, loss] of Object.entries(days)) {
    const age = Math.max(0, ...SPANS.filter((span) => span <= today - Number(day)));
    // Days in the future: of a clock that was ahead, or of an epoch that ends later.
    losses = raised(losses, age ? Math.max(0, today - age) : latest, loss);
  }
  return losses;
}
