// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"
)

// Annotations that steer a sync.
const (
	hookAnnotation         = "argocd.argoproj.io/hook"
	deletePolicyAnnotation = "argocd.argoproj.io/hook-delete-policy"
	waveAnnotation         = "argocd.argoproj.io/sync-wave"
	optionsAnnotation      = "argocd.argoproj.io/sync-options"

	helmHookAnnotation         = "helm.sh/hook"
	helmDeletePolicyAnnotation = "helm.sh/hook-delete-policy"
	helmWeightAnnotation       = "helm.sh/hook-weight"
	helmResourceAnnotation     = "helm.sh/resource-policy"
)

// DeletePolicy says when a hook's object is deleted.
type DeletePolicy string

// Delete policies.
const (
	HookSucceeded      DeletePolicy = "HookSucceeded"
	HookFailed         DeletePolicy = "HookFailed"
	BeforeHookCreation DeletePolicy = "BeforeHookCreation"
)

// traits are what an object's annotations say.
type traits struct {
	// hook is true for an object that is a hook of any kind, also of one that
	// never runs here; phases are those it runs in.
	hook     bool
	phases   []PhaseName
	policies []DeletePolicy
	// unsupported are Helm hooks without a counterpart.
	unsupported []string
	// skip: the object is not to be synced.
	skip    bool
	wave    int
	options map[string]string
	// keep is Helm's way to say that nobody but a person deletes it.
	keep bool
}

func (t *traits) has(option, value string) bool { return t.options[option] == value }

// readTraits reads an object's annotations. All faults are errors that name the
// object: a wave or a hook that is not understood would otherwise run at a time
// that nobody chose.
func readTraits(o *Object) (traits, error) {
	annotations := o.content.GetAnnotations()
	t := traits{
		options: readOptions(annotations[optionsAnnotation]),
		keep:    annotations[helmResourceAnnotation] == "keep",
	}
	err := t.readHooks(o, annotations)
	if err == nil {
		err = t.readWave(o, annotations)
	}
	return t, err
}

func (t *traits) readHooks(o *Object, annotations map[string]string) error {
	if text, found := annotations[hookAnnotation]; found {
		return t.readArgoHooks(o, text, annotations)
	}
	// Helm hooks count only where there is none of Argo CD's.
	if text, found := annotations[helmHookAnnotation]; found {
		t.readHelmHooks(text, annotations)
	}
	return nil
}

func (t *traits) readArgoHooks(o *Object, text string, annotations map[string]string) error {
	for word := range words(text) {
		phase := PhaseName(word)
		switch phase {
		case PreSync, Sync, PostSync, SyncFail, PostDelete:
			t.hook = true
			t.phases = append(t.phases, phase)
		case "PreDelete":
			t.hook = true
			t.unsupported = append(t.unsupported, word)
		case "Skip":
			t.skip = true
		default:
			// A hook of a kind that is not known here: see builder.candidates.
			t.hook = true
			return o.fault(hookAnnotation, strconv.Quote(word)+
				" is no hook: use PreSync, Sync, PostSync, SyncFail, PostDelete or Skip")
		}
	}
	t.sortPhases()
	for word := range words(annotations[deletePolicyAnnotation]) {
		policy := DeletePolicy(word)
		switch policy {
		case HookSucceeded, HookFailed, BeforeHookCreation:
			t.policies = append(t.policies, policy)
		default:
			return o.fault(deletePolicyAnnotation, strconv.Quote(word)+
				" is no delete policy: use HookSucceeded, HookFailed or BeforeHookCreation")
		}
	}
	t.sortPolicies()
	return nil
}

// readHelmHooks maps Helm's hooks to ours. An install and an upgrade are both a
// sync. Helm's other hooks belong to commands that have no counterpart here, so
// they do not run; they are no error either, because charts are full of them.
func (t *traits) readHelmHooks(text string, annotations map[string]string) {
	for word := range words(text) {
		switch word {
		case "crd-install":
			// An ordinary object: definitions come first anyway.
			continue
		case "pre-install", "pre-upgrade":
			t.phases = append(t.phases, PreSync)
		case "post-install", "post-upgrade":
			t.phases = append(t.phases, PostSync)
		case "post-delete":
			t.phases = append(t.phases, PostDelete)
		default:
			t.unsupported = append(t.unsupported, word)
		}
		t.hook = true
	}
	t.sortPhases()
	for word := range words(annotations[helmDeletePolicyAnnotation]) {
		switch word {
		case "hook-succeeded":
			t.policies = append(t.policies, HookSucceeded)
		case "hook-failed":
			t.policies = append(t.policies, HookFailed)
		case "before-hook-creation":
			t.policies = append(t.policies, BeforeHookCreation)
		}
	}
	t.sortPolicies()
}

func (t *traits) sortPhases() {
	slices.SortFunc(t.phases, func(a, b PhaseName) int { return a.index() - b.index() })
	t.phases = slices.Compact(t.phases)
}

// sortPolicies puts the default in where none is given: a hook that ran in the
// last sync has to make way for the one of this sync.
func (t *traits) sortPolicies() {
	if t.hook && len(t.policies) == 0 {
		t.policies = []DeletePolicy{BeforeHookCreation}
	}
	slices.Sort(t.policies)
	t.policies = slices.Compact(t.policies)
}

func (t *traits) readWave(o *Object, annotations map[string]string) error {
	for _, name := range []string{waveAnnotation, helmWeightAnnotation} {
		text, found := annotations[name]
		if !found {
			continue
		}
		wave, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return o.fault(name, strconv.Quote(text)+" is no whole number: use one such as \"-1\" or \"5\"")
		}
		t.wave = int(wave)
		return nil
	}
	return nil
}

// readOptions reads Name=value pairs. What is not such a pair is left out: the
// annotation is shared with other programs, and every use names what it wants.
func readOptions(text string) map[string]string {
	var options map[string]string
	for word := range words(text) {
		name, value, found := strings.Cut(word, "=")
		if !found {
			continue
		}
		if options == nil {
			options = map[string]string{}
		}
		options[name] = value
	}
	return options
}

// words are the parts between commas, without blanks.
func words(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" && !yield(part) {
				return
			}
		}
	}
}

func (o *Object) fault(field, problem string) error {
	key := o.key
	if key.Name == "" {
		key.Name = o.content.GetGenerateName() + "…"
	}
	return &FieldError{Key: key, Source: o.source, Field: field, Problem: problem}
}
