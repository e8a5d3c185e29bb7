// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// output is a value of -o.
type output string

const (
	outputTable output = ""
	outputWide  output = "wide"
	outputJSON  output = "json"
	outputYAML  output = "yaml"
	outputName  output = "name"
)

// addOutputFlag gives a command -o with the values that it knows.
func addOutputFlag(c *cobra.Command, o *output, values ...string) {
	c.Flags().VarP(&outputFlag{to: o, values: values}, "output", "o", "how to print: "+choice(values))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

type outputFlag struct {
	to     *output
	values []string
}

func (f *outputFlag) String() string {
	if f.to == nil {
		return ""
	}
	return string(*f.to)
}

// Type is what help shows for the value.
func (f *outputFlag) Type() string { return "format" }

func (f *outputFlag) Set(s string) error {
	for _, v := range f.values {
		if s == v {
			*f.to = output(s)
			return nil
		}
	}
	return fmt.Errorf("use %s", choice(f.values))
}

// choice writes values as "a, b or c".
func choice(values []string) string {
	text := ""
	for i, v := range values {
		switch {
		case i == 0:
		case i == len(values)-1:
			text += " or "
		default:
			text += ", "
		}
		text += v
	}
	return text
}

// printData writes a value as JSON or YAML.
func printData(out io.Writer, o output, value any) error {
	if o == outputYAML {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(text)
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// bundle is how several objects are one document, as kubectl prints them.
type bundle struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Items      []client.Object `json:"items"`
}

func newBundle(items []client.Object) bundle {
	if items == nil {
		items = []client.Object{}
	}
	return bundle{APIVersion: "v1", Kind: "List", Items: items}
}

// tidy takes out what is of no use to a reader.
func tidy(o client.Object) { o.SetManagedFields(nil) }

// qualified is an object's name with its kind, as kubectl takes it.
func qualified(k *kind, o client.Object) string {
	return k.resource + "." + k.gvk().Group + "/" + o.GetName()
}
