// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"time"
)

// progress tells a person what is going on, a line at a time.
type progress struct {
	out io.Writer
}

func (p progress) line(format string, args ...any) {
	fmt.Fprintf(p.out, format+"\n", args...)
}

// begin says that something starts; the function it returns, that it is ready
// and how long that took.
func (p progress) begin(what, detail string) (done func()) {
	started := time.Now()
	p.line("  starting %s", what)
	return func() {
		p.line("  %-24s ready after %s  %s", what, seconds(time.Since(started)), detail)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
