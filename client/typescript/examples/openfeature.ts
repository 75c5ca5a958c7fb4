/**
 * A provider for OpenFeature's web SDK: flags that have the value of the device's arm of an experiment.
 *
 *     const values = { new_menu: { control: false, new: true } };
 *     await OpenFeature.setProviderAndWait(new Arms(await open({ bundle, shuffler }), values));
 *     if (OpenFeature.getClient().getBooleanValue("new_menu", false)) ...
 *
 * The device draws the arm itself, so the provider reads no context: no identifier of a person is part
 * of an experiment. Reports of the experiment's metrics name the arm.
 */
import {
  FlagNotFoundError,
  StandardResolutionReasons,
  type JsonValue,
  type Provider,
  type ResolutionDetails,
  TypeMismatchError,
} from "@openfeature/web-sdk";
import type { Client } from "hubbub-client";

/** Of each flag, which has the name of its experiment, the value of each arm. */
export type ArmValues = Readonly<Record<string, Readonly<Record<string, JsonValue>>>>;

/** Flags by the arms of experiments. */
export class Arms implements Provider {
  readonly runsOn = "client";
  readonly metadata = { name: "hubbub" };
  readonly resolveBooleanEvaluation = this.#resolve<boolean>("boolean");
  readonly resolveStringEvaluation = this.#resolve<string>("string");
  readonly resolveNumberEvaluation = this.#resolve<number>("number");

  constructor(
    private readonly client: Client,
    private readonly values: ArmValues,
  ) {}

  /** The value of the device's arm. @throws FlagNotFoundError no such flag, or no value for the arm. */
  resolveObjectEvaluation<Value extends JsonValue>(flag: string): ResolutionDetails<Value> {
    return this.#details(flag);
  }

  #resolve<Value extends JsonValue>(type: string): (flag: string) => ResolutionDetails<Value> {
    return (flag) => {
      const details = this.#details<Value>(flag);
      if (typeof details.value !== type) {
        throw new TypeMismatchError(
          `${flag} has an arm whose value is no ${type}; correct the values`,
        );
      }
      return details;
    };
  }

  #details<Value extends JsonValue>(flag: string): ResolutionDetails<Value> {
    const value = Object.hasOwn(this.values, flag) ? this.values[flag] : undefined;
    const arm = value ? this.client.arm(flag) : "";
    if (!value || !Object.hasOwn(value, arm)) {
      throw new FlagNotFoundError(`${flag} has no value for this device's arm; add it`);
    }
    return { value: value[arm] as Value, variant: arm, reason: StandardResolutionReasons.SPLIT };
  }
}
