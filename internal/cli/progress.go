// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
)

// progress shows how far something is: on a terminal in one line that is
// written over, elsewhere line by line. The same line twice is said once.
type progress struct {
	out      io.Writer
	terminal bool
	last     string
}

func newProgress(out io.Writer, terminal bool) *progress {
	return &progress{out: out, terminal: terminal}
}

// lineStart goes back and clears the line.
const lineStart = "\r\x1b[K"

func (p *progress) say(line string) {
	if line == p.last {
		return
	}
	p.last = line
	if p.terminal {
		fmt.Fprint(p.out, lineStart, line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// end leaves the last line standing.
func (p *progress) end() {
	if p.terminal && p.last != "" {
		fmt.Fprintln(p.out)
	}
}
