// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/weir-gitops/weir/internal/gitserve"
)

// SampleTenant is the namespace to try things in.
const SampleTenant = "sample-tenant"

// sampleFiles is what the sample repository holds, and sampleResource what
// deploys it.
//
//go:embed sample
var sampleFiles embed.FS

const (
	sampleRoot     = "sample/repository"
	sampleResource = "sample/gitopsdeployment.yaml"
	sampleURL      = "REPOSITORY_URL"
)

// ServeSample makes the sample repository where it is missing, serves it, and
// writes the resource that deploys it. Serving starts with the server's Run.
func ServeSample(ctx context.Context, f Folder, port int, log *slog.Logger) (*gitserve.Server, error) {
	if err := createSample(ctx, f); err != nil {
		return nil, err
	}
	// Read only: to change it, push to the folder, which is its owner's alone.
	server, err := gitserve.Listen(ctx, gitserve.Options{Root: f.repositories(), Address: loopback(port), Log: log})
	if err != nil {
		return nil, err
	}
	resource, err := sampleFiles.ReadFile(sampleResource)
	if err == nil {
		err = writeFile(f.Sample(), []byte(strings.ReplaceAll(string(resource), sampleURL, server.URL(SampleRepository))))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the sample: %w", err), server.Close())
	}
	return server, nil
}

func createSample(ctx context.Context, f Folder) error {
	first := gitserve.Commit{Message: "A small application", Files: map[string]string{}}
	err := fs.WalkDir(sampleFiles, sampleRoot, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := sampleFiles.ReadFile(path)
		first.Files[strings.TrimPrefix(path, sampleRoot+"/")] = string(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the sample: %w", err)
	}
	_, err = gitserve.Create(ctx, f.repository(), first)
	if errors.Is(err, fs.ErrExist) {
		// Made complete at an earlier start, and the user's since.
		return nil
	}
	return err
}
