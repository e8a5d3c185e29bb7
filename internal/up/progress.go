// SPDX-License-Identifier: Apache-2.0

package up

import (
	"fmt"
	"io"
	"time"
)

// Progress prints what is being done, each line with the seconds since the
// start.
type Progress struct {
	out   io.Writer
	began time.Time
}

// NewProgress begins to count.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out, began: time.Now()} }

// Say prints one line.
func (p *Progress) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, "[%5.1fs] %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}
