/** Experiments: a device's arm, drawn from its secret. As experiments.py of client/hubbub/catalog. */
import { pick } from "../mechanisms/random_bits.js";
import { purpose } from "../mechanisms/permanent.js";
import type { Memo } from "../mechanisms/randomizer.js";
import { listed, number, ownValue, table, text, type Table } from "./json.js";
import type { Experiment } from "./metric.js";
import type { Notice } from "./sampling.js";

/** The experiment that a metric measures, if there is one. */
export function experimentOf({ experiment }: Table): Experiment | null {
  if (experiment === undefined) return null;
  const { name: experimentName, arms: pairs } = table(experiment);
  const name = text(experimentName);
  const arms = listed(pairs).map((pair) => {
    const [arm, weight] = listed(pair);
    return [text(arm), number(weight)] as const;
  });
  const definition = arms.map(([arm, weight]) => `${arm}=${weight}`).join(",");
  const [control = ""] = arms.map(([arm]) => arm);
  return {
    name,
    definition,
    live(notice, now) {
      const liveArms = arms.filter(([, weight]) => weight).map(([arm]) => arm);
      const going = liveArms.filter((arm) => !isStopped(`${name}.${arm}`, notice, now));
      return going.length ? going : liveArms.slice(0, 1);
    },
    isOver(notice, now) {
      return this.live(notice, now).length < arms.length;
    },
    drawn(memo: Memo) {
      const totalWeight = arms.reduce((sum, [, weight]) => sum + weight, 0);
      let place = pick(memo.coins(purpose(`arm/1|${definition}`)), totalWeight);
      for (const [arm, weight] of arms) {
        if (place < weight) return arm;
        place -= weight;
      }
      return control;
    },
  };
}

/** Whether a notice stops an arm, by "EXPERIMENT.ARM", at a moment. */
function isStopped(name: string, notice: Notice | null, now: number): boolean {
  if (!notice || now >= notice.until) return false;
  const steps = (ownValue(notice.steps, name) ?? []).filter(([since]) => since <= now);
  return steps.at(-1)?.[1] === 0;
}
