/** One of the addresses that an Express path stands for. */
export interface ApiPath {
  /** As OpenAPI writes it: `/v1/models/{model}`. */
  path: string;
  /** Names of its parameters, in order. */
  parameters: string[];
  /** What tells its operation from the others of the same Express path: `Version`. */
  suffix: string;
}

const OPTIONAL = /\{([^{}]*)\}/;
const PARAMETER = /:(\w+)/g;

/** The addresses of a path with optional parts, such as `/v1/models/:model{/versions/:version}/predict`. */
export function pathsOf(expressPath: string): ApiPath[] {
  const variants = [{ path: expressPath, suffix: '' }];
  for (let at = 0; at < variants.length; at++) {
    const variant = variants[at];
    const part = variant && OPTIONAL.exec(variant.path);
    if (!variant || !part) continue;
    const [braced, inner = ''] = part;
    const { path, suffix } = variant;
    const name = [...inner.matchAll(PARAMETER)].map(([, parameter = '']) => capitalized(parameter)).join('');
    variants.splice(
      at--,
      1,
      { path: path.replace(braced, ''), suffix },
      { path: path.replace(braced, inner), suffix: suffix + name },
    );
  }
  return variants.map(({ path, suffix }) => ({
    path: path.replaceAll(PARAMETER, '{$1}'),
    parameters: [...path.matchAll(PARAMETER)].map(([, name = '']) => name),
    suffix,
  }));
}

export function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
