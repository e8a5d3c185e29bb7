// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"bufio"
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

const advertisement = "application/x-git-upload-pack-advertisement"

func (r Remote) checkHTTP(ctx context.Context, c Credential, o Options) error {
	if c.SSHPrivateKey != "" && c.isEmpty() {
		return r.fail(ErrInvalidCredentials, "is https and the credential is an SSH key", "set username and password, or use the ssh:// URL", nil)
	}
	if strings.Contains(c.Username, ":") {
		return r.fail(ErrInvalidCredentials, "has a credential whose username contains a colon", "set username and password apart", nil)
	}
	request, err := r.infoRefs(ctx, c)
	if err != nil {
		return r.fail(ErrInvalidURL, "cannot be asked for", "check the URL", err)
	}
	client := o.Dialer.HTTPClient(tenantnet.HTTPOptions{
		Timeout: o.Timeout, AllowHTTP: o.AllowHTTP, RootCAs: o.RootCAs,
		// Elsewhere the credential would not be sent, and so not be proved.
		SameOrigin: !c.isEmpty(),
	})
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return r.connectionError(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := r.statusError(response.StatusCode, c); err != nil {
		return err
	}
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != advertisement {
		return r.fail(ErrNotGit, "answers, but not as a Git repository does", "check the path; it is the URL that git clone takes", nil)
	}
	return r.verdict(ctx, readAdvertisement(bufio.NewReader(response.Body), true))
}

// infoRefs is the first request of a clone.
func (r Remote) infoRefs(ctx context.Context, c Credential) (*http.Request, error) {
	address := r.url(r.path+"/info/refs") + "?service=git-upload-pack"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	// Some hosts answer browsers with a web page; this is how they tell.
	request.Header.Set("User-Agent", "git/2.0 (weir)")
	request.Header.Set("Git-Protocol", "version=2")
	if !c.isEmpty() {
		request.SetBasicAuth(c.Username, c.Password)
	}
	return request, nil
}

func (r Remote) statusError(status int, c Credential) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusUnauthorized && c.isEmpty():
		return r.fail(ErrInvalidCredentials, "asks for credentials", "add a GitOpsDeploymentRepositoryCredential for it", nil)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return r.fail(ErrInvalidCredentials, "refuses the credentials", "check username and password, and that they may read the repository", nil)
	case status == http.StatusNotFound || status == http.StatusGone:
		return r.fail(ErrNotFound, "does not exist, or does not show itself to these credentials", "check the path and who may read it", nil)
	case status == http.StatusTooManyRequests || status >= 500:
		return r.fail(ErrUnreachable, "answers "+strconv.Itoa(status), "its server has a problem; it is tried again", nil)
	}
	return r.fail(ErrNotGit, "answers "+strconv.Itoa(status)+", which no Git repository does", "check the URL", nil)
}
