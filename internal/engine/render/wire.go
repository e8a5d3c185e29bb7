// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// answer is what a child says: objects or an error.
type answer struct {
	Type       Type         `json:"type,omitempty"`
	Objects    []wireObject `json:"objects,omitempty"`
	Duplicates []Duplicate  `json:"duplicates,omitempty"`
	Error      *wireError   `json:"error,omitempty"`
	// Notes are about the child, not about what it rendered.
	Notes []string `json:"notes,omitempty"`
}

type wireObject struct {
	File   string          `json:"file"`
	Index  int             `json:"index"`
	Object json.RawMessage `json:"object"`
}

type wireError struct {
	Kind    string `json:"kind"`
	File    string `json:"file,omitempty"`
	Index   int    `json:"index,omitempty"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
}

func answerOf(result *Result, err error) *answer {
	if err == nil {
		out := &answer{Type: result.Type, Duplicates: result.Duplicates}
		for _, o := range result.Objects {
			object, marshalErr := o.MarshalJSON()
			if marshalErr != nil {
				return answerOf(nil, foreign(o.File, "cannot be written as JSON", marshalErr))
			}
			out.Objects = append(out.Objects, wireObject{File: o.File, Index: o.Index, Object: object})
		}
		return out
	}
	wire := &wireError{Kind: "crashed", Problem: clipped(err.Error())}
	var own *Error
	if errors.As(err, &own) {
		wire.File, wire.Index, wire.Problem, wire.Remedy = own.File, own.Index, own.Problem, own.Remedy
	}
	for name, kind := range kinds() {
		if errors.Is(err, kind) {
			wire.Kind = name
		}
	}
	return &answer{Error: wire}
}

// result turns an answer back. A child may have been taken over by what it
// rendered, so its answer is read as a stranger's: objects go through the same
// checks as those of files.
func (a *answer) result(limits Limits) (*Result, error) {
	if e := a.Error; e != nil {
		kind, ok := kinds()[e.Kind]
		if !ok {
			kind = ErrCrashed
		}
		return nil, &Error{Kind: kind, File: clipped(e.File), Index: e.Index, Problem: clipped(e.Problem), Remedy: clipped(e.Remedy)}
	}
	out := &collector{limits: limits.withDefaults()}
	for _, o := range a.Objects {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(o.Object); err != nil {
			return nil, foreign(o.File, "is not a Kubernetes object", err)
		}
		if err := out.object(&u, o.File, o.Index, int64(len(o.Object))); err != nil {
			return nil, err
		}
	}
	return &Result{Type: a.Type, Objects: out.objects, Duplicates: a.Duplicates}, nil
}

// readAll reads up to a limit, and fails where there is more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fault(ErrTooLarge, "", "", "more than %d bytes were sent", limit)
	}
	return data, nil
}
