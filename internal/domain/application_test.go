// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/domain"
)

func drawSpec(t *rapid.T) domain.ApplicationSpec {
	text := rapid.String()
	return domain.ApplicationSpec{
		RepoURL:        "https://" + text.Draw(t, "repoURL"),
		Path:           "./" + text.Draw(t, "path"),
		TargetRevision: text.Draw(t, "targetRevision"),
		Namespace:      text.Draw(t, "namespace"),
		Environment:    text.Draw(t, "environment"),
		Automated:      rapid.Bool().Draw(t, "automated"),
		SyncOptions:    rapid.SliceOf(rapid.SampledFrom([]string{"CreateNamespace=true", "PruneLast=true", "ServerSideApply=true"})).Draw(t, "syncOptions"),
	}
}

func TestApplicationSpecRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		back, err := domain.DecodeApplicationSpec(spec.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if !back.Equal(spec) {
			t.Fatalf("comes back as something else:\n%s", cmp.Diff(spec, back))
		}
		if back.Encode() != spec.Encode() {
			t.Fatal("the text is not canonical: encoding again gives another")
		}
	})
}

func TestEncodeLeavesTheSpecAlone(t *testing.T) {
	t.Parallel()
	spec := domain.ApplicationSpec{SyncOptions: []string{"b", "a", "b"}}
	spec.Encode()
	if diff := cmp.Diff([]string{"b", "a", "b"}, spec.SyncOptions); diff != "" {
		t.Errorf("encoding changed the caller's options (-want +got):\n%s", diff)
	}
}

func TestEqualIgnoresOrderAndRepetitionOfOptions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		other := spec
		other.SyncOptions = rapid.Permutation(spec.SyncOptions).Draw(t, "permutation")
		if n := len(spec.SyncOptions); n > 0 {
			other.SyncOptions = append(slices.Clone(other.SyncOptions), spec.SyncOptions[rapid.IntRange(0, n-1).Draw(t, "repeated")])
		}
		if !spec.Equal(other) || !other.Equal(spec) {
			t.Fatalf("not equal:\n%s", cmp.Diff(spec, other))
		}
	})
	none, empty := domain.ApplicationSpec{}, domain.ApplicationSpec{SyncOptions: []string{}}
	if !none.Equal(empty) {
		t.Error("no options and an empty list of options differ")
	}
}

// Every field counts. The fields come from the type itself, so that one added
// later is covered, or fails here because this test cannot change it.
func TestEqualSeesEveryField(t *testing.T) {
	t.Parallel()
	fields := reflect.TypeFor[domain.ApplicationSpec]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				spec := drawSpec(t)
				other := spec
				switch field := reflect.ValueOf(&other).Elem().Field(i); field.Kind() {
				case reflect.String:
					field.SetString(field.String() + rapid.StringN(1, 5, -1).Draw(t, "more"))
				case reflect.Bool:
					field.SetBool(!field.Bool())
				case reflect.Slice:
					field.Set(reflect.ValueOf(append(slices.Clone(spec.SyncOptions), "ApplyOutOfSyncOnly=true")))
				default:
					t.Fatalf("do not know how to change a %s", field.Kind())
				}
				if spec.Equal(other) || other.Equal(spec) {
					t.Fatalf("equal although they differ:\n%s", cmp.Diff(spec, other))
				}
			})
		})
	}
}

func TestDecodeApplicationSpec(t *testing.T) {
	t.Parallel()
	got, err := domain.DecodeApplicationSpec(`{"repoURL":"https://git.example.com/a","path":"deploy","namespace":"a","automated":true,"syncOptions":["x"]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := domain.ApplicationSpec{RepoURL: "https://git.example.com/a", Path: "deploy", Namespace: "a", Automated: true, SyncOptions: []string{"x"}}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeDamagedSpecNamesTheColumn(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{`, `"text"`, `[]`, `{"path":1}`, `{"path":"a"} trailing`} {
		_, err := domain.DecodeApplicationSpec(text)
		if err == nil || !strings.Contains(err.Error(), "application.spec") {
			t.Errorf("DecodeApplicationSpec(%q): %v; want an error that names application.spec", text, err)
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		if !errors.As(err, &syntax) && !errors.As(err, &kind) {
			t.Errorf("DecodeApplicationSpec(%q) hides its cause: %v", text, err)
		}
	}
}
