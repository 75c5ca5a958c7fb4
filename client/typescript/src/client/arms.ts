/** The arm of an experiment on this device. Loaded only if a bundle has experiments. */
import type { Experiment, Public } from "../catalog/metric.js";
import { UnknownMetric } from "../errors.js";
import { meant } from "./value_hints.js";
import { memoOf } from "./memo.js";
import type { Reporter } from "./reporter.js";

/** As Reporter.arm(). @throws UnknownMetric the bundle has no such experiment. */
export function arm(reporter: Reporter, name: unknown): string {
  if (typeof name !== "string") {
    throw new UnknownMetric(`an experiment is named by a text, not by ${typeof name}`);
  }
  const experiments = [...reporter.bundle.metrics.values()].flatMap(
    ({ experiment }) => experiment ?? [],
  );
  const experiment = experiments.find((other) => other.name === name);
  if (!experiment) {
    const names = [...new Set(experiments.map((other) => other.name))].sort();
    const remedy = `the catalog has ${names.join(", ") || "none"}${meant(names, name)}`;
    throw new UnknownMetric(`no experiment is called "${name}"; ${remedy}`);
  }
  const live = experiment.live(reporter.notice, reporter.now());
  // PRIVACY: the arm depends only on the secret, with coins for this purpose alone.
  const memo = memoOf(reporter.device.secret, `experiment/${name}`);
  const armName = reporter.isOn ? experiment.drawn(memo) : "";
  return live.includes(armName) ? armName : (live[0] ?? "");
}

/** The public value of an experiment: "" after the experiment is over. */
export function publicArm(reporter: Reporter, experiment: Experiment): Public {
  const isOver = experiment.isOver(reporter.notice, reporter.now());
  return { [experiment.name]: isOver ? "" : arm(reporter, experiment.name) };
}
