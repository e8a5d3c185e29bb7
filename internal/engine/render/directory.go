// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"maps"
	"slices"
)

// skipMark in a file keeps it out, as in Argo CD.
const skipMark = "+argocd:skip-file-rendering"

// renderDirectory takes the manifests of files as they are.
func renderDirectory(request *Request) (*collector, error) {
	out := &collector{limits: request.Limits}
	for _, name := range slices.Sorted(maps.Keys(request.Files)) {
		if bytes.Contains(request.Files[name], []byte(skipMark)) {
			continue
		}
		if err := out.add(name, request.Files[name]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
