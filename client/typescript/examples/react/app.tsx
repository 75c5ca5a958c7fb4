/** React: one client for the app, a hook that reports, and the ledger as a component. */
import { createContext, useContext, useEffect, useRef, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

import { open, type BrowserOptions, type Client, type Value } from "hubbub-client";
import { defineLedger } from "hubbub-client/ledger";

const Reporting = createContext<Client | null>(null);

/** Opens a client for all that is within. Until it is open, and where it cannot be, nothing is said. */
export function ReportingProvider(props: { options: BrowserOptions; children: ReactNode }) {
  const { options, children } = props;
  const [client, setClient] = useState<Client | null>(null);
  useEffect(() => {
    const opening = open(options);
    opening.then(setClient, console.warn);
    return () => {
      setClient(null);
      void opening.then((openedClient) => openedClient.close()).catch(() => undefined);
    };
  }, [options]);
  return <Reporting value={client}>{children}</Reporting>;
}

/** What reports: as client.report(), and nothing while there is no client. */
export function useReport() {
  const client = useContext(Reporting);
  return (metric: string, value: Value) => client?.report(metric, value);
}

/** The person's ledger. */
export function Ledger() {
  const client = useContext(Reporting);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    defineLedger();
    const ledger = document.createElement("hubbub-ledger");
    ledger.client = client;
    place.current?.replaceChildren(ledger);
  }, [client]);
  return <div ref={place} />;
}

function Settings() {
  const report = useReport();
  const [outcome, setSaid] = useState<string>();
  return (
    <label>
      Theme{" "}
      <select
        onChange={(event) => {
          setSaid(report("theme", event.target.value));
        }}
      >
        <option>light</option>
        <option>dark</option>
        <option>system</option>
      </select>
      <output>{outcome}</output>
    </label>
  );
}

/** Shows the app in an element of the page. */
export function show(place: Element, options: BrowserOptions): void {
  createRoot(place).render(
    <ReportingProvider options={options}>
      <Settings />
      <Ledger />
    </ReportingProvider>,
  );
}
