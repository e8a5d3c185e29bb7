// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-gitops/weir/localkube/internal/atomicfile"
	"github.com/weir-gitops/weir/localkube/internal/pki"
)

// contextName is the one context of every kubeconfig written here.
const contextName = "localkube"

// writeKubeconfigs writes the user's kubeconfig and those of the components.
func writeKubeconfigs(l layout, keys *pki.Bundle, port int) error {
	for _, k := range []struct {
		file string
		user pki.Pair
	}{
		{l.kubeconfig(), keys.Admin},
		{l.conf(controllerManager), keys.ControllerManager},
		{l.conf(scheduler), keys.Scheduler},
		{l.conf(nodesClient), keys.Nodes},
	} {
		if err := writeKubeconfig(k.file, keys.CA.CertFile, k.user, port); err != nil {
			return fmt.Errorf("kubeconfig %s: %w", k.file, err)
		}
	}
	return nil
}

// writeKubeconfig embeds the certificates, so that the file works wherever it
// is copied to.
func writeKubeconfig(file, caFile string, user pki.Pair, port int) error {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(user.CertFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(user.KeyFile)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			contextName: {Server: "https://" + loopback(port), CertificateAuthorityData: ca},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			contextName: {ClientCertificateData: cert, ClientKeyData: key},
		},
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: contextName, AuthInfo: contextName}},
		CurrentContext: contextName,
	})
	if err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o600)
}
