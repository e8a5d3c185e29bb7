// SPDX-License-Identifier: Apache-2.0

package diff

import "testing"

const benchDesired = `
metadata: {labels: {app: a}, annotations: {tracking: t}}
spec:
  replicas: 3
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: app
        image: registry/app:1
        args: [--a, --b, --c]
        env: [{name: A, value: a}, {name: B, value: b}, {name: C, value: c}]
        ports: [{containerPort: 80}, {containerPort: 81}]
        resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 100m, memory: 128Mi}}
        volumeMounts: [{name: v, mountPath: /v}]
      volumes: [{name: v, emptyDir: {}}]
`

const benchOwned = `{"f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {"f:tracking": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:metadata": {"f:labels": {"f:app": {}}},
 "f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}, 'k:{"name":"B"}': {".": {}, "f:name": {}, "f:value": {}},
 'k:{"name":"C"}': {".": {}, "f:name": {}, "f:value": {}}}, "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}, 'k:{"containerPort":81,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
 "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}, "f:requests": {"f:cpu": {}, "f:memory": {}}}, "f:volumeMounts": {'k:{"mountPath":"/v"}': {".": {}, "f:mountPath": {}, "f:name": {}}}}},
 "f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}, "f:emptyDir": {}}}}}}}`

// BenchmarkCompare is one Deployment that is as it should be.
func BenchmarkCompare(b *testing.B) {
	desired := parse(b, "apps/v1 Deployment", benchDesired)
	live := desired.DeepCopy()
	owned(b, live, manager, "Apply", benchOwned)
	c := comparer(b)
	if r := compare(b, c, desired, live); !r.Equal {
		b.Fatal(r)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Compare(desired, live); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCache is the same object a second time.
func BenchmarkCache(b *testing.B) {
	cache := NewCache(1000)
	cache.Add(Hash{1}, "u", "1")
	b.ReportAllocs()
	for b.Loop() {
		if !cache.Equal(Hash{1}, "u", "1") {
			b.Fatal("forgotten")
		}
	}
}
