/**
 * One report from Node: report BUNDLE SHUFFLER FOLDER METRIC VALUE [RELAY]
 *
 * SHUFFLER is an address as https://HOST:PORT, FOLDER where this device keeps what it said, RELAY what
 * it sends through so that the shuffler does not see from where. HUBBUB_ACCOUNT is the key of an account,
 * where the bundle's reports need tokens.
 */
import { open } from "hubbub-client/node";

const [bundle, shuffler, folder, metric, value, relay] = process.argv.slice(2);
if (!bundle || !shuffler || !folder || !metric || !value) {
  throw new Error("write: report BUNDLE SHUFFLER FOLDER METRIC VALUE [RELAY]");
}
const account = process.env["HUBBUB_ACCOUNT"];
const client = await open({
  ...{ bundle, shuffler, folder },
  ...(relay ? { relay } : {}),
  ...(account ? { account } : {}),
});
console.log(client.report(metric, value));
console.log((await client.close()) ? "nothing waits" : "it waits for the next start");
