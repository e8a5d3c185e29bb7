// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// terminal is the user's, if there is one.
type terminal interface {
	// Is says whether a stream is a terminal.
	Is(stream any) bool
	// ReadPassword reads a line that is not shown.
	ReadPassword(ctx context.Context, in any) ([]byte, error)
}

type realTerminal struct{}

// Is says whether a stream is a terminal.
func (realTerminal) Is(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ReadPassword reads a line that is not shown. Interrupted, it leaves the
// terminal as it was: the reader itself cannot be stopped, and would leave
// the user with a terminal that shows nothing of what is typed.
func (realTerminal) ReadPassword(ctx context.Context, in any) ([]byte, error) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, errNoTerminal
	}
	state, err := term.GetState(int(f.Fd()))
	if err != nil {
		return nil, fmt.Errorf("read from the terminal: %w", err)
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := term.ReadPassword(int(f.Fd()))
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		return r.text, r.err
	case <-ctx.Done():
		return nil, errors.Join(&exitError{exitInterrupted, errInterrupted}, term.Restore(int(f.Fd()), state))
	}
}

var (
	errNoTerminal  = errors.New("not a terminal")
	errInterrupted = errors.New("interrupted; nothing was changed")
)

// prompter asks the user.
type prompter struct {
	terminal terminal
	in       io.Reader
	out      io.Writer
}

// interactive says whether there is somebody to ask.
func (p *prompter) interactive() bool { return p.terminal.Is(p.in) }

// line asks for a line.
func (p *prompter) line(ctx context.Context, question string) (string, error) {
	fmt.Fprint(p.out, question)
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := bufio.NewReader(p.in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(text), err}
	}()
	select {
	case r := <-read:
		return r.text, r.err
	case <-ctx.Done():
		return "", &exitError{exitInterrupted, errInterrupted}
	}
}

// password asks for a line that is not shown.
func (p *prompter) password(ctx context.Context, question string) (hidden, error) {
	fmt.Fprint(p.out, question)
	text, err := p.terminal.ReadPassword(ctx, p.in)
	fmt.Fprintln(p.out)
	return text, err
}

// confirm asks a question that yes answers; anything else is no.
func (p *prompter) confirm(ctx context.Context, question string) (bool, error) {
	reply, err := p.line(ctx, question+" [y/N] ")
	if err != nil {
		return false, err
	}
	return strings.EqualFold(reply, "y") || strings.EqualFold(reply, "yes"), nil
}
