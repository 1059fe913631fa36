import type { Datatype, ModelDescription, Settings, TensorSpec } from '@millrace/shared';

/** More would not fit on a line; the model's metadata has them all. */
const MOST_TENSORS = 2;

export interface Served {
  url: string;
  /** HOST:PORT; absent where gRPC is off. */
  grpc?: string;
  models: ModelDescription[];
  /** Where each worker's health and metrics are. */
  workerUrls: string[];
  settings: Settings;
  /** Where a person finds the password again; undefined if they set it themselves. */
  passwordFile: string | undefined;
}

/** What a person reads when everything is ready. */
export function summary({ url, grpc, models, workerUrls, settings, passwordFile }: Served): string[] {
  const width = Math.max(...models.map(({ name }) => name.length));
  const [first] = models;
  return [
    '',
    `Millrace serves ${url}`,
    ...models.map((model) => `  ${model.name.padEnd(width)}  ${model.task}: ${signature(model)}`),
    '',
    ...(first ? ['Try it:', `  ${curlLine(url, first, settings.apiKeys.length > 0)}`, ''] : []),
    ...(settings.socketPath
      ? [`Socket     ${settings.socketPath}`, `           ${socketLine(settings.socketPath)}`]
      : []),
    ...(grpc ? [`gRPC       ${grpc}`] : []),
    `API        ${url}/docs`,
    `Dashboard  ${url}/dashboard`,
    // Lines of their own: a password that a terminal breaks in two can't be copied.
    '           user admin',
    ...(passwordFile
      ? [`           password ${settings.dashboardPassword}`, `           kept in ${passwordFile}`]
      : ['           password as you set it']),
    `Metrics    ${url}/metrics`,
    ...workerUrls.map((each, i) => `${`Worker ${i + 1}`.padEnd(9)}  ${each}/metrics, ${each}/health/ready`),
    'Stop       Ctrl-C',
    '',
  ];
}

function signature({ inputs, outputs }: ModelDescription): string {
  return `${tensorsText(inputs)} -> ${tensorsText(outputs)}`;
}

function tensorsText(tensors: TensorSpec[]): string {
  const shown = tensors.slice(0, MOST_TENSORS).map(tensorText).join(', ');
  const more = tensors.length - MOST_TENSORS;
  return more > 0 ? `${shown} and ${more} more` : shown;
}

function tensorText({ name, datatype, shape, optional }: TensorSpec): string {
  const sizes = shape.map((size) => (size < 0 ? '*' : size)).join(',');
  return `${name} ${datatype}[${sizes}]${optional ? ' (optional)' : ''}`;
}

/** The same server through its unix socket; the address is only for the Host header. */
function socketLine(path: string): string {
  return `curl -s --unix-socket '${path.replaceAll("'", "'\\''")}' http://localhost/v2/health/ready`;
}

/** A line to paste into a shell. */
export function curlLine(url: string, model: ModelDescription, needsKey: boolean): string {
  const isText = model.task === 'text-embedding';
  const path = isText ? `/v1/models/${model.name}/predict` : `/v2/models/${model.name}/infer`;
  const body = isText ? { inputs: 'That is a happy person' } : { inputs: exampleTensors(model.inputs) };
  return [
    `curl -s ${url}${path}`,
    `-H 'content-type: application/json'`,
    ...(needsKey ? [`-H "authorization: Bearer $MILLRACE_KEY"`] : []),
    `-d '${JSON.stringify(body)}'`,
  ].join(' ');
}

/** One item for every input that must be given, or for the first where none must. */
function exampleTensors(inputs: TensorSpec[]) {
  const required = inputs.filter(({ optional }) => !optional);
  const given = required.length > 0 ? required : inputs.slice(0, 1);
  return given.map(({ name, datatype, shape }) => {
    const [, ...rest] = shape;
    const sizes = [1, ...rest.map((size) => (size < 0 ? 3 : size))];
    const elements = sizes.reduce((product, size) => product * size, 1);
    return {
      name,
      datatype,
      shape: sizes,
      data: Array.from({ length: elements }, (_, i) => sample(datatype, i)),
    };
  });
}

function sample(datatype: Datatype, index: number): number | boolean | string {
  if (datatype === 'BYTES') return `text ${index + 1}`;
  if (datatype === 'BOOL') return index % 2 === 0;
  return index + 1;
}
