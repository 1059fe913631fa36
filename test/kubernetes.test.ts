import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from '@millrace/shared';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';

const BASE = fileURLToPath(new URL('../../k8s/base', import.meta.url));
/** What a run of the largest batch may take after the drain has begun, and a margin. */
const LONGEST_RUN_S = 5;
const MARGIN_S = 5;

interface Container {
  args: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string } } }[];
  ports: { name: string; containerPort: number }[];
  lifecycle?: { preStop?: { exec: { command: string[] } } };
  securityContext: Record<string, unknown>;
  volumeMounts: { name: string }[];
  [probe: string]: unknown;
}

interface Resource {
  kind: string;
  metadata: { name: string };
  data: Record<string, string>;
  resources: string[];
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: Record<string, unknown>;
        containers: Container[];
        volumes: { name: string }[];
      };
    };
  };
}

describe('k8s/base', () => {
  const found = new Map<string, Resource>();
  const files: string[] = [];

  before(async () => {
    for (const file of await readdir(BASE)) {
      files.push(file);
      for (const document of parseAllDocuments(await readFile(join(BASE, file), 'utf8'))) {
        expect(document.errors, file).to.deep.equal([]);
        const resource = document.toJS() as Resource;
        found.set(`${resource.kind} ${resource.metadata?.name ?? ''}`.trim(), resource);
      }
    }
  });

  function get(name: string): Resource {
    const resource = found.get(name);
    if (!resource) throw new Error(`there is no ${name}`);
    return resource;
  }

  function podOf(name: string) {
    const pod = get(`Deployment ${name}`).spec.template.spec;
    const [container] = pod.containers;
    if (!container) throw new Error(`${name} has no container`);
    return { pod, container };
  }

  it('lists every file', () => {
    const others = files.filter((file) => file !== 'kustomization.yaml');
    expect(get('Kustomization').resources).to.have.members(others);
  });

  it('gives gateways time for their preStop and their drain', () => {
    const { pod, container } = podOf('millrace-gateway');
    const preStopS = Number(container.lifecycle?.preStop?.exec.command[1]);
    expect(pod.terminationGracePeriodSeconds).to.be.at.least(preStopS + graceS() + MARGIN_S);
  });

  it('gives workers time for their drain and their longest run, and no preStop', () => {
    const { pod, container } = podOf('millrace-worker');
    expect(pod.terminationGracePeriodSeconds).to.be.at.least(graceS() + LONGEST_RUN_S + MARGIN_S);
    expect(container).not.to.have.property('lifecycle');
  });

  it('names only settings that there are', () => {
    const known = Object.values(SETTINGS).map(({ env }): string => env);
    expect(known).to.include.members(Object.keys(get('ConfigMap millrace').data));
    for (const name of ['millrace-gateway', 'millrace-worker']) {
      expect(known).to.include.members(podOf(name).container.env.map((variable) => variable.name));
    }
  });

  it('probes ports that are there, without root, on a read-only file system', () => {
    for (const name of ['millrace-gateway', 'millrace-worker']) {
      const { pod, container } = podOf(name);
      const ports = container.ports.map((port) => port.name);
      for (const probe of ['readinessProbe', 'livenessProbe']) {
        const { httpGet } = container[probe] as { httpGet: { port: string } };
        expect(ports, `${name} ${probe}`).to.include(httpGet.port);
      }
      expect(pod.securityContext).to.include({ runAsNonRoot: true });
      expect(container.securityContext).to.include({ readOnlyRootFilesystem: true });
      const volumes = pod.volumes.map((volume) => volume.name);
      expect(volumes).to.have.members(container.volumeMounts.map((mount) => mount.name));
    }
  });

  function graceS(): number {
    return Number(get('ConfigMap millrace').data.MILLRACE_GRACE_MS) / 1000;
  }
});
