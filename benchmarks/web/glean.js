// A ping with one string, sent at once, as Glean's own documentation does.
import StringMetric from "@mozilla/glean/private/metrics/string";
import Ping from "@mozilla/glean/private/ping";
import Glean from "@mozilla/glean/web";

const about = { includeClientId: false, sendIfEmpty: false };
const ping = new Ping({ name: "theme", ...about });
const theme = new StringMetric({
  ...{ category: "app", name: "theme", sendInPings: ["theme"], lifetime: "ping", disabled: false },
});

export function send(address) {
  Glean.initialize("bench", true, { serverEndpoint: address });
  theme.set("dark");
  ping.submit();
}
