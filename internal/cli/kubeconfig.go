// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// target is another cluster as its kubeconfig describes it: what Weir needs to
// reach it, and nothing of the machine that the kubeconfig was on.
type target struct {
	server string
	ca     []byte
	token  hidden
	// certificate and key are set where there is no token.
	certificate []byte
	key         hidden
}

// readTarget takes from one context of a kubeconfig what Weir can use. Files
// are read: they are on the user's own machine. What works only here, or with
// somebody's further rights, is refused by name: the service would refuse it
// too, but later and less clearly.
func readTarget(config *clientcmdapi.Config, contextName, apiURL string, skipTLSVerify bool) (*target, error) {
	c, ok := config.Contexts[contextName]
	if !ok {
		return nil, noContext(config, contextName)
	}
	cluster, ok := config.Clusters[c.Cluster]
	if !ok {
		return nil, fmt.Errorf("context %q names the cluster %q, which the kubeconfig does not have", contextName, c.Cluster)
	}
	user, ok := config.AuthInfos[c.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("context %q names the user %q, which the kubeconfig does not have", contextName, c.AuthInfo)
	}
	t := &target{server: firstText(apiURL, cluster.Server)}
	if err := t.readCluster(cluster, contextName, skipTLSVerify); err != nil {
		return nil, err
	}
	if err := t.readUser(user, contextName); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *target) readCluster(c *clientcmdapi.Cluster, contextName string, skipTLSVerify bool) error {
	address, err := url.Parse(t.server)
	switch {
	case err != nil || address.Host == "":
		return fmt.Errorf("the cluster of context %q has no usable server: give its address with --api-url https://HOST:PORT", contextName)
	case address.Scheme != "https":
		return fmt.Errorf("the cluster of context %q is not reached by https: Weir sends credentials to no other; give an https address with --api-url", contextName)
	case address.User != nil:
		return errors.New("the address of the cluster contains credentials: give it without, with --api-url")
	case c.ProxyURL != "":
		return fmt.Errorf("the cluster of context %q is reached through a proxy (proxy-url), which Weir does not use: give an address that needs none, in a kubeconfig without proxy-url", contextName)
	case c.TLSServerName != "":
		return fmt.Errorf("the cluster of context %q has tls-server-name, which Weir does not use: give an address that its certificate names, in a kubeconfig without tls-server-name", contextName)
	case skipTLSVerify:
		return nil
	case c.InsecureSkipTLSVerify:
		return fmt.Errorf("context %q does not check the cluster's certificate: give a kubeconfig with its CA, or accept with --skip-tls-verify that whoever sits in between can read the credentials", contextName)
	}
	t.ca, err = inlined(c.CertificateAuthorityData, c.CertificateAuthority, "certificate-authority")
	return err
}

// errUnusableUser is a user of a kubeconfig that Weir cannot be.
var errUnusableUser = errors.New("these credentials are of no use to Weir")

func (t *target) readUser(u *clientcmdapi.AuthInfo, contextName string) error {
	var how string
	switch {
	case u.Exec != nil:
		how = fmt.Sprintf("signs in with a program on this machine (exec: %s)", u.Exec.Command)
	case u.AuthProvider != nil:
		how = fmt.Sprintf("signs in with an auth-provider (%s)", u.AuthProvider.Name)
	case u.Username != "" || len(u.Password) > 0:
		how = "signs in with a user name and password, which Kubernetes does no longer take"
	case u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups) > 0 || len(u.ImpersonateUserExtra) > 0:
		how = "acts as somebody else (impersonation)"
	}
	if how != "" {
		return unusable(contextName, how)
	}
	// A token file, where there is one, is newer than a token beside it.
	token, err := inlined(nil, u.TokenFile, "tokenFile")
	if err != nil {
		return err
	}
	if len(token) == 0 {
		token = []byte(u.Token)
	}
	if t.token = bytes.TrimSpace(token); len(t.token) > 0 {
		return nil
	}
	if t.certificate, err = inlined(u.ClientCertificateData, u.ClientCertificate, "client-certificate"); err != nil {
		return err
	}
	if t.key, err = inlined(u.ClientKeyData, u.ClientKey, "client-key"); err != nil {
		return err
	}
	if len(t.certificate) == 0 || len(t.key) == 0 {
		return unusable(contextName, "has neither a token nor a client certificate with its key")
	}
	return nil
}

func unusable(contextName, how string) error {
	return fmt.Errorf("%w: the user of context %q %s. Make a service account on that cluster and give a context with its token (kubectl create token NAME --duration 1h); with --create-service-account that token is used only once, to create an account of Weir's own", errUnusableUser, contextName, how)
}

// inlined gives data, or else what the file holds.
func inlined(data []byte, file, field string) ([]byte, error) {
	if len(data) > 0 || file == "" {
		return data, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig's %s cannot be read: %w", field, err)
	}
	return text, nil
}

// kubeconfig is the smallest that reaches the target.
func (t *target) kubeconfig(name string) (hidden, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: t.server, CertificateAuthorityData: t.ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: string(t.token), ClientCertificateData: t.certificate, ClientKeyData: t.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// local says whether the server is this machine itself, which Weir, being
// elsewhere, would not find there.
func (t *target) local() bool {
	address, err := url.Parse(t.server)
	if err != nil {
		return false
	}
	ip := net.ParseIP(address.Hostname())
	return address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
