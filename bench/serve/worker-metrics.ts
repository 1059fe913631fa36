/** Values of a worker's metrics by name, summed over what their labels tell apart, for one model. */
export async function workerMetrics(
  workerUrl: string,
  model: string,
  names: readonly string[],
): Promise<Record<string, number>> {
  const response = await fetch(`${workerUrl}/metrics`);
  const lines = (await response.text()).split('\n');
  return Object.fromEntries(
    names.map((name) => {
      const values = lines
        .filter((line) => line.startsWith(`${name}{`) && line.includes(`model="${model}"`))
        .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
      if (values.length === 0) throw new Error(`the worker has no metric ${name}`);
      return [name, values.reduce((sum, value) => sum + value, 0)];
    }),
  );
}
