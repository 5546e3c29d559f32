import { describe, expect, it } from 'vitest';
import { HELP, howToUse, parseCommand } from '../../tools/cluster/cli.ts';

describe('the command line of the cluster harness', () => {
  it('takes defaults when only the action is given', () => {
    expect(parseCommand(['up'])).toEqual({ action: 'up', name: 'dev', nodes: 1, rest: [], env: false, all: false });
  });

  it('reads every option', () => {
    const args = '--name b --nodes 4 --provider native --kubernetes-version v1.37.2 --fsync'.split(' ');
    expect(parseCommand(['up', ...args])).toMatchObject({
      name: 'b',
      nodes: 4,
      provider: 'native',
      kubernetesVersion: '1.37.2',
      fsync: true,
    });
  });

  it('keeps what follows the action', () => {
    expect(parseCommand(['load-image', 'a.tar', 'b.tar']).rest).toEqual(['a.tar', 'b.tar']);
  });

  it('shows the help without an action and with --help', () => {
    expect(parseCommand([]).action).toBe('help');
    expect(parseCommand(['up', '--help']).action).toBe('help');
    expect(HELP).toContain('Examples');
  });

  it('takes the kubeconfig from KILIT_KUBECONFIG', () => {
    expect(parseCommand(['status'], { KILIT_KUBECONFIG: '/a' }).kubeconfig).toBe('/a');
  });

  it("does not take the user's own KUBECONFIG", () => {
    expect(parseCommand(['status'], { KUBECONFIG: '/home/me/.kube/config' })).not.toHaveProperty('kubeconfig');
  });

  it.each([
    { args: ['jump'], fault: "unknown action 'jump'" },
    { args: ['up', '--nodes', '5'], fault: 'nodes must be 1 to 4, got 5' },
    { args: ['up', '--nodes', 'two'], fault: 'nodes must be 1 to 4, got NaN' },
    { args: ['up', '--name', '../x'], fault: "got '../x'" },
    { args: ['up', '--provider', 'cloud'], fault: "--provider must be one of native, kind, existing, got 'cloud'" },
    { args: ['up', '--kubernetes-version', 'latest'], fault: "must be like 1.36.3, got 'latest'" },
  ])('refuses $args', ({ args, fault }) => {
    expect(() => parseCommand(args)).toThrow(fault);
  });

  it.each(['native', 'kind'] as const)('says how to use a cluster of provider %s in the shell', (provider) => {
    expect(howToUse({ name: 'left', provider, kubeconfigPath: '/k' })).toBe(
      'eval "$(npm run --silent cluster -- kubeconfig --name left --env)"',
    );
  });

  it('says of an existing cluster which kubeconfig it is', () => {
    expect(howToUse({ name: 'dev', provider: 'existing', kubeconfigPath: '/k' })).toBe("export KUBECONFIG='/k'");
  });

  it('names all faults at once', () => {
    expect(() => parseCommand(['up', '--nodes', '0', '--name', 'A'])).toThrow(/got 'A'; nodes must be 1 to 4, got 0/);
  });
});
