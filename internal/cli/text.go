// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// plain makes a text safe to show on one line of a terminal. Messages can come
// from a stranger's repository or cluster; an escape sequence in one could
// rewrite what the tenant reads.
func plain(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		default:
			return r
		}
	}, s))
}

// plainWriter makes lines plain on their way.
type plainWriter struct{ to io.Writer }

func (w plainWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, plain(string(p))+"\n"); err != nil {
		return 0, err
	}
	return len(p), nil
}

// short is a commit as people write it. What is no commit stays as it is.
func short(revision string) string {
	if len(revision) != 40 && len(revision) != 64 {
		return orDash(revision)
	}
	if strings.Trim(revision, "0123456789abcdef") != "" {
		return revision
	}
	return revision[:8]
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// messageWidth is where a table cuts a message; -o wide shows all of it.
const messageWidth = 80

// shortened cuts a message that would fill a table.
func shortened(s string) string {
	runes := []rune(s)
	if len(runes) <= messageWidth {
		return s
	}
	return strings.TrimSpace(string(runes[:messageWidth-1])) + "…"
}

// ago is how long something is past, or "-" where it never was.
func ago(now time.Time, t *metav1.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(t.Time)))
}

// took is the time between two moments, or "-" where one is missing.
func took(start, end *metav1.Time) string {
	if start.IsZero() || end.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, end.Sub(start.Time)))
}

// counted is a number with its noun.
func counted(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return strconv.Itoa(n) + " " + plural
}
