// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

func TestPlainTextHasNoControlCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "text")
		for _, r := range plain(s) {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' || r == '\u2066' {
				t.Fatalf("%q keeps %q", s, r)
			}
		}
	})
	if got := plain(" a\tb\r\nc\x1b[31m\u202e "); got != "a b  c\uFFFD[31m\uFFFD" {
		t.Errorf("got %q", got)
	}
}

func TestClosest(t *testing.T) {
	names := []string{"shop", "shop-prod", "shop-stage", "billing", "mail"}
	for word, want := range map[string][]string{
		"shp": {"shop"}, "shop-prd": {"shop-prod"}, "shop-": {"shop", "shop-prod", "shop-stage"}, "biling": {"billing"}, "zebra": nil, "": nil,
	} {
		if word == "" {
			continue
		}
		if diff := cmp.Diff(want, closest(word, names)); diff != "" {
			t.Errorf("%s: %s", word, diff)
		}
	}
}

func TestEditsIsADistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[a-c-]{0,8}")
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		switch {
		case edits(a, a) != 0:
			t.Fatal("not zero to itself")
		case a != b && edits(a, b) == 0:
			t.Fatal("zero between different words")
		case edits(a, b) != edits(b, a):
			t.Fatal("not symmetric")
		case edits(a, c) > edits(a, b)+edits(b, c):
			t.Fatal("longer than a detour")
		}
	})
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		commit: "3b18e512", "": "-", "main": "main", strings.Repeat("a", 64): "aaaaaaaa",
		"release-" + strings.Repeat("z", 32): "release-" + strings.Repeat("z", 32),
	} {
		if got := short(in); got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	condition := func(kind v1alpha1.ConditionType, s metav1.ConditionStatus) v1alpha1.Condition {
		return v1alpha1.Condition{Type: kind, Status: s, Reason: "Why"}
	}
	for _, test := range []struct {
		name       string
		start, end *metav1.Time
		conditions []v1alpha1.Condition
		want       runState
	}{
		{name: "new", want: runWaiting},
		{name: "an orphan says so and goes on", conditions: []v1alpha1.Condition{condition(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue)}, want: runWaiting},
		{name: "not known yet", start: before(1), conditions: []v1alpha1.Condition{condition(v1alpha1.ConditionSucceeded, metav1.ConditionUnknown)}, want: runRunning},
		{name: "good", conditions: []v1alpha1.Condition{condition(v1alpha1.ConditionSucceeded, metav1.ConditionTrue)}, want: runSucceeded},
		{name: "bad", start: before(1), conditions: []v1alpha1.Condition{condition(v1alpha1.ConditionSucceeded, metav1.ConditionFalse)}, want: runFailed},
		{name: "ended", start: before(2), end: before(1), want: runFailed},
	} {
		r := &v1alpha1.GitOpsDeploymentSyncRun{Status: v1alpha1.GitOpsDeploymentSyncRunStatus{StartedAt: test.start, FinishedAt: test.end, Conditions: test.conditions}}
		if got := judge(r); got.state != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.state, test.want)
		}
	}
}

func TestTokenExpiry(t *testing.T) {
	payload := base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1772366400}`))
	for token, want := range map[string]time.Time{
		"a." + payload + ".b": time.Unix(1772366400, 0), "a.%%.b": {}, "opaque": {}, "a." + base64.RawURLEncoding.EncodeToString([]byte(`{}`)) + ".b": {},
	} {
		if got := tokenExpiry(token); !got.Equal(want) {
			t.Errorf("%s ends %s, want %s", token, got, want)
		}
	}
}

func TestProgramNames(t *testing.T) {
	for called, want := range map[string]string{"/usr/bin/weir": "weir", "kubectl-weir": "kubectl weir", "/x/kubectl-weir.exe": "kubectl weir"} {
		if got := programName(called); got != want {
			t.Errorf("%s is %s, want %s", called, got, want)
		}
	}
	var out buffer
	root := newTestRoot("kubectl weir", fakeTerminal{}, time.Now)
	root.SetArgs([]string{"sync", "--help"})
	root.SetOut(&out)
	must(t, root.ExecuteContext(t.Context()))
	for _, text := range []string{"Usage:\n  kubectl weir sync NAME", "\n  kubectl weir sync shop --revision"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("help does not say %q:\n%s", text, out.String())
		}
	}
	if strings.Contains(out.String(), "\n  weir ") {
		t.Errorf("help speaks of weir alone:\n%s", out.String())
	}
}

func TestEveryCommandHasHelpAndCompletion(t *testing.T) {
	root := newTestRoot("weir", fakeTerminal{}, time.Now)
	for _, c := range root.Commands() {
		if c.GroupID != GroupID {
			continue
		}
		for _, leaf := range append(c.Commands(), c) {
			if leaf.Short == "" || leaf.Args == nil || !leaf.HasSubCommands() && leaf.ValidArgsFunction == nil {
				t.Errorf("%s lacks a short help, a check of its arguments, or completion", leaf.CommandPath())
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	w := newTenant(t)
	w.create(testkit.Deployment("", "shop"))
	w.create(testkit.Deployment("", "site"))
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"sync", "--kubeconfig", w.kubeconfig, "s"}, "shop\nsite\n:4\n"},
		{[]string{"history", "--kubeconfig", w.kubeconfig, ""}, "shop\nsite\n:4\n"},
		{[]string{"get", "--kubeconfig", w.kubeconfig, "deploy", ""}, "shop\nsite\n:4\n"},
		{[]string{"get", ""}, "deployments\nsyncruns\nenvironments\ncredentials\nall\n:4\n"},
		{[]string{"get", "-o", ""}, "json\nyaml\nwide\nname\n:4\n"},
		{[]string{"get", "--kubeconfig", w.kubeconfig, "--context", ""}, "tenant\n:4\n"},
		{[]string{"env", "add", "--from-kubeconfig", targetKubeconfig(t, withToken()), "--context", ""}, "prod\n:4\n"},
		{[]string{"sync", "--kubeconfig", "/none", ""}, ":4\n"},
	} {
		var out buffer
		root := newTestRoot("weir", fakeTerminal{}, time.Now)
		root.SetArgs(append([]string{"__complete"}, test.words...))
		root.SetOut(&out)
		root.SetErr(&buffer{})
		must(t, root.ExecuteContext(t.Context()))
		if out.String() != test.want {
			t.Errorf("%v: %q, want %q", test.words, out.String(), test.want)
		}
	}
}

func TestHistoryAndDescribeOfARealDeployment(t *testing.T) {
	w := newTenant(t)
	d := testkit.Deployment("", "shop")
	w.create(d)
	w.run("history", "shop").want(t, 0, "has not been deployed yet")
	start, end := metav1.NewTime(time.Now().Add(-time.Minute)), metav1.NewTime(time.Now().Add(-30*time.Second))
	for id := range int64(3) {
		d.Status.History = append(d.Status.History, v1alpha1.HistoryEntry{ID: id, Revision: fmt.Sprintf("v%d", id), Phase: v1alpha1.OperationSucceeded, DeployStartedAt: &start, DeployedAt: &end})
	}
	w.setStatus(d)
	res := w.run("history", "shop", "--limit", "2")
	res.want(t, 0, "v2", "v1", "30s")
	if strings.Contains(res.out, "v0") {
		t.Errorf("--limit 2 shows more:\n%s", res.out)
	}
	w.run("history", "shop", "-o", "json").want(t, 0, `"id": 0`, `"revision": "v0"`)
	w.run("describe", "shop").want(t, 0, "deployment shop, in namespace "+w.namespace, "History")
	w.run("describe", "deploy", "shop").want(t, 0, "Destination")
	w.run("describe", "thing", "shop").want(t, 2, `no kind "thing"`)
	w.run("describe", "shap").want(t, 1, "did you mean shop?")
}
