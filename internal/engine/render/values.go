// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
)

// helmValues puts the application's values together. Later ones win: values
// files in their order, then values or valuesObject, then parameters.
func helmValues(request *Request) (map[string]any, error) {
	o := helmOptions(request.Spec)
	values := map[string]any{}
	for _, name := range o.ValueFiles {
		file, err := valuesFile(request.Spec, name)
		if err != nil {
			return nil, err
		}
		data, ok := request.Files[file]
		if !ok {
			// Gather has allowed it to be missing.
			continue
		}
		if values, err = overlay(values, file, data, request.Limits); err != nil {
			return nil, err
		}
	}
	var err error
	switch {
	case o.ValuesObject != nil:
		values, err = overlay(values, "helm.valuesObject", o.ValuesObject.Raw, request.Limits)
	case o.Values != "":
		values, err = overlay(values, "helm.values", []byte(o.Values), request.Limits)
	}
	if err != nil {
		return nil, err
	}
	for _, parameter := range o.Parameters {
		set := strvals.ParseInto
		if parameter.ForceString {
			set = strvals.ParseIntoString
		}
		// A comma would begin the next assignment.
		text := parameter.Name + "=" + strings.NewReplacer(`\,`, `\,`, ",", `\,`).Replace(parameter.Value)
		if err := set(text, values); err != nil {
			return nil, foreign("helm.parameters", parameter.Name, err)
		}
	}
	return values, nil
}

// overlay merges values on top of others. Helm reads them, as it reads those of
// the chart.
func overlay(below map[string]any, file string, data []byte, limits Limits) (map[string]any, error) {
	if err := guardAll(file, data, limits); err != nil {
		return nil, err
	}
	above, err := loader.LoadValues(bytes.NewReader(data))
	if err != nil {
		return nil, foreign(file, "cannot be read as values", err)
	}
	return loader.MergeMaps(below, above), nil
}
