// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// maxReferences bounds what ls-remote may print for the few references it is
// asked for.
const maxReferences = 1 << 20

// Resolve gives the commit that a revision stands for now. In this order it is
// HEAD (also where it is empty), the whole id of a commit, which needs no server,
// a reference by its whole name (refs/…), a branch, a tag, or the first seven or
// more digits of a commit's id.
func (c *Cache) Resolve(ctx context.Context, repo Repo, revision string) (string, error) {
	t, err := c.target(repo)
	if err != nil {
		return "", err
	}
	if err := CheckRevision(revision); err != nil {
		return "", err
	}
	if isID(revision) {
		return revision, nil
	}
	if revision == "" {
		revision = head
	}
	return share(ctx, c.flights, "resolve/"+t.access+"/"+revision, func(ctx context.Context) (string, error) {
		return c.resolve(ctx, t, revision)
	})
}

func (c *Cache) resolve(ctx context.Context, t target, revision string) (string, error) {
	names := candidates(revision)
	found, err := c.references(ctx, t, names)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if commit, ok := found[name]; ok {
			return commit, nil
		}
	}
	if isShort(revision) {
		return c.resolveShort(ctx, t, revision)
	}
	return "", t.fail(ErrRevisionNotFound, "check the name; it may have been deleted", "has no branch, tag or commit %q", revision)
}

// candidates lists the references that a revision can be, the best first. An
// annotated tag is an object of its own; with ^{} it is what it points to.
func candidates(revision string) []string {
	switch {
	case revision == head:
		return []string{head}
	case strings.HasPrefix(revision, "refs/"):
		return []string{revision + "^{}", revision}
	}
	return []string{"refs/heads/" + revision, "refs/tags/" + revision + "^{}", "refs/tags/" + revision}
}

// references asks the server for references. The names are patterns to
// ls-remote, which also match at the end of longer names; only those that are
// equal count. Without characters that have a meaning in patterns, which
// CheckRevision refuses, git tells the server to send these only.
func (c *Cache) references(ctx context.Context, t target, names []string) (map[string]string, error) {
	env, remove, err := c.remote(ctx, t, c.empty)
	if err != nil {
		return nil, err
	}
	defer remove()
	args := append([]string{"ls-remote", "--quiet", "--", origin}, names...)
	output, err := c.runner.Run(ctx, Command{Args: args, Env: env, MaxOutput: maxReferences})
	if err != nil {
		return nil, c.visitError(ctx, t, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(output)) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if ok && isID(id) {
			found[name] = id
		}
	}
	return found, nil
}

// resolveShort looks a commit up by the beginning of its id. No server can be
// asked for that: the history of all branches and tags is fetched, commits only
// where the server can do that, into a clone of its own, so that the other stays
// shallow.
func (c *Cache) resolveShort(ctx context.Context, t target, short string) (string, error) {
	one := c.clone(fingerprint(t.id, "history"))
	select {
	case one.fetching <- struct{}{}:
		defer func() { <-one.fetching }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	commit, err := c.searchHistory(ctx, t, one, short)
	if errors.Is(err, ErrRepositoryTooLarge) {
		err = errors.Join(err, one.discard())
	}
	return commit, errors.Join(err, c.prune(one))
}

func (c *Cache) searchHistory(ctx context.Context, t target, one *clone, short string) (string, error) {
	one.mu.RLock()
	defer one.mu.RUnlock()
	if err := c.ensure(ctx, one); err != nil {
		return "", err
	}
	args := append(fetchArgs(), "--filter=tree:0", "--prune", "--", origin, "+refs/heads/*:refs/weir/heads/*", "+refs/tags/*:refs/weir/tags/*")
	if err := c.visit(ctx, t, one, args); err != nil {
		return "", c.visitError(ctx, t, err)
	}
	output, err := c.runner.Run(ctx, Command{
		Args: []string{"rev-list", "--all"}, Env: c.local(one.folder), MaxOutput: c.limits.ReadBytes,
	})
	if err != nil {
		return "", c.visitError(ctx, t, err)
	}
	return t.pick(string(output), short)
}

// pick finds the one commit that begins with the given digits.
func (t target) pick(commits, short string) (string, error) {
	found := ""
	for line := range strings.Lines(commits) {
		if !strings.HasPrefix(line, short) {
			continue
		}
		if found != "" {
			return "", t.fail(ErrRevisionNotFound, "use more digits of the id", "has more than one commit whose id begins with %s", short)
		}
		found = strings.TrimSpace(line)
	}
	if !isID(found) {
		return "", t.fail(ErrRevisionNotFound, "check the name; it may have been deleted", "has no branch, tag or commit %q", short)
	}
	return found, nil
}

// visitError finds the words for git's failure at a server.
func (c *Cache) visitError(ctx context.Context, t target, err error) error {
	var process *ProcessError
	if ctx.Err() != nil || !errors.As(err, &process) && !errors.Is(err, errOutput) {
		return err
	}
	if why := c.explain(ctx, t); why != nil {
		return why
	}
	return &Error{
		Kind: ErrUnreadable, Remote: t.remote.String(), cause: err,
		Problem: fmt.Sprintf("answers, and git cannot read it (%v)", err), Remedy: "if its URL redirects, use the one that it redirects to",
	}
}
