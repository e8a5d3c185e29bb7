// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// rotation measures from a changed Secret of a tenant to the engine's own: read,
// checked against the cluster, sealed, written, announced and carried out.
func (b *bench) rotation(ctx context.Context) error {
	const namespace, name = "bench-rotation", "remote"
	if err := b.tenants(ctx, namespace); err != nil {
		return err
	}
	stop, err := b.rig.WatchEnvironments(ctx)
	if err != nil {
		return err
	}
	defer stop()
	kubeconfig, _, server, err := b.rig.Remote(ctx)
	if err != nil {
		return err
	}
	connected := b.rig.Board.Expect(rig.Connected(namespace, name))
	if err := b.addEnvironment(ctx, namespace, name, server, kubeconfig); err != nil {
		return err
	}
	if _, err := connected.Wait(ctx); err != nil {
		return err
	}
	n := max(b.sizes.block, b.sizes.latencies/4)
	cost, err := b.startCosts(ctx)
	if err != nil {
		return err
	}
	latency, floor, err := b.inTurns(ctx, n, "credentials rotated", func(int) (time.Duration, error) {
		return b.rotate(ctx, namespace, name)
	})
	if err != nil {
		return err
	}
	p50 := floor.beside("rotated credential → the engine's Secret", latency, 50)
	spent, err := cost.end(ctx)
	if err != nil {
		return err
	}
	p50.Target, p50.Detail = report.AtMostFloors(3), spent.hops
	b.add("rotation", milliseconds("floor, truth down", floor.total, 50), p50, floor.beside("rotated credential → the engine's Secret", latency, 99))
	return b.rest(ctx)
}

func (b *bench) rotate(ctx context.Context, namespace, name string) (time.Duration, error) {
	kubeconfig, token, _, err := b.rig.Remote(ctx)
	if err != nil {
		return 0, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"stringData":{"kubeconfig":%q}}`, kubeconfig)
	seen := b.rig.Board.Expect(rig.TokenKnown(token))
	start := time.Now()
	if err := b.rig.Client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return 0, fmt.Errorf("rotate a Secret: %w", err)
	}
	at, err := seen.Wait(ctx)
	return at.Sub(start), err
}

func (b *bench) addEnvironment(ctx context.Context, namespace, name, server string, kubeconfig []byte) error {
	if err := b.rig.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: v1alpha1.ManagedEnvironmentSecretType,
		Data: map[string][]byte{v1alpha1.ManagedEnvironmentSecretKubeconfigKey: kubeconfig},
	}); err != nil {
		return fmt.Errorf("create a Secret: %w", err)
	}
	if err := b.clients[namespace].Create(ctx, &v1alpha1.GitOpsDeploymentManagedEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{APIURL: server, CredentialsSecret: name},
	}); err != nil {
		return fmt.Errorf("create a GitOpsDeploymentManagedEnvironment: %w", err)
	}
	return nil
}

// environments connects many clusters, alone and beside some that accept a
// connection and never answer.
func (b *bench) environments(ctx context.Context) error {
	stop, err := b.rig.WatchEnvironments(ctx)
	if err != nil {
		return err
	}
	defer stop()
	silent, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = silent.Close() }()
	// Twice each, in turns: the first connections to a new kind of object are slow.
	var alone, beside report.Durations
	for i := range 2 {
		without, err := b.connectAll(ctx, fmt.Sprintf("bench-alone-%d", i), "", 0)
		if err != nil {
			return err
		}
		with, err := b.connectAll(ctx, fmt.Sprintf("bench-beside-%d", i), silent.Addr().String(), b.sizes.dead)
		if err != nil {
			return err
		}
		alone, beside = append(alone, without), append(beside, with)
		b.say("%d environments: %.1f s alone, %.1f s beside %d that never answer", b.sizes.environments, without.Seconds(), with.Seconds(), b.sizes.dead)
	}
	figure := report.Figure{
		Name:  fmt.Sprintf("%d environments beside %d that never answer, until all are connected", b.sizes.environments, b.sizes.dead),
		Value: beside.Percentile(0).Seconds(), Floor: alone.Percentile(0).Seconds(), Unit: report.UnitSeconds, Target: report.AtMostFloors(1.2),
	}
	b.add("environments", report.Figure{
		Name: fmt.Sprintf("%d environments alone, until all are connected", b.sizes.environments), Value: alone.Percentile(0).Seconds(), Unit: report.UnitSeconds,
	}, figure)
	return nil
}

// connectAll makes environments in several namespaces, the dead ones first, and
// says how long it took until all others were connected.
func (b *bench) connectAll(ctx context.Context, prefix, silent string, dead int) (time.Duration, error) {
	const each = 10
	var names []string
	for i := range (b.sizes.environments + each - 1) / each {
		names = append(names, fmt.Sprintf("%s-%d", prefix, i))
	}
	if err := b.tenants(ctx, names...); err != nil {
		return 0, err
	}
	kubeconfig, _, server, err := b.rig.Remote(ctx)
	if err != nil {
		return 0, err
	}
	for i := range dead {
		address := "https://" + silent
		text := fmt.Appendf(nil, "clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n", address)
		if err := b.addEnvironment(ctx, names[i%len(names)], fmt.Sprintf("dead-%d", i), address, text); err != nil {
			return 0, err
		}
	}
	var seen []*rig.Sighting
	start := time.Now()
	for i := range b.sizes.environments {
		namespace, name := names[i%len(names)], fmt.Sprintf("good-%d", i)
		seen = append(seen, b.rig.Board.Expect(rig.Connected(namespace, name)))
		if err := b.addEnvironment(ctx, namespace, name, server, kubeconfig); err != nil {
			return 0, err
		}
	}
	last, err := rig.WaitAll(ctx, seen)
	return last.Sub(start), err
}
