// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	caMargin     = 400 * 24 * time.Hour // longer than a leaf lives: no leaf outlives its authority
	leafLifetime = 365 * 24 * time.Hour
	leafMargin   = 60 * 24 * time.Hour
	// backdate lets a certificate be valid for a clock that is a little behind.
	backdate = 5 * time.Minute
)

// Pair names the files of one certificate and its key.
type Pair struct {
	CertFile, KeyFile string
}

// Bundle is the content of a pki folder.
type Bundle struct {
	CA                Pair
	Serving           Pair
	Admin             Pair
	ControllerManager Pair
	Scheduler         Pair
	Nodes             Pair
	// ServiceAccountKey signs tokens, ServiceAccountPub verifies them.
	ServiceAccountKey, ServiceAccountPub string
	// Renewed names the certificates that this call issued, in order.
	Renewed []string
}

// leaf is the request for one certificate.
type leaf struct {
	name   string
	cn     string
	groups []string
	dns    []string
	ips    []net.IP
	usage  x509.ExtKeyUsage
	into   *Pair
}

// Ensure makes the folder hold a complete, valid set of keys and certificates
// as of now, keeping every part that is still good. serviceIP is the address
// that the service "kubernetes" has inside the cluster.
func Ensure(dir string, serviceIP net.IP, now time.Time) (*Bundle, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("pki folder: %w", err)
	}
	b := &Bundle{
		ServiceAccountKey: filepath.Join(dir, "service-account.key"),
		ServiceAccountPub: filepath.Join(dir, "service-account.pub"),
	}
	ca, err := ensureCA(dir, now, b)
	if err != nil {
		return nil, err
	}
	for _, l := range leaves(b, serviceIP) {
		if err := ensureLeaf(dir, ca, l, now, b); err != nil {
			return nil, err
		}
	}
	if err := ensureTokenKey(b.ServiceAccountKey, b.ServiceAccountPub); err != nil {
		return nil, err
	}
	return b, nil
}

// leaves lists every certificate. The groups are the ones that the API
// server's built-in RBAC rules speak of; the nodes' client simulates kubelets
// of all nodes at once, which no built-in group may, hence system:masters.
func leaves(b *Bundle, serviceIP net.IP) []leaf {
	client := x509.ExtKeyUsageClientAuth
	return []leaf{
		{
			name: "serving", cn: "kube-apiserver", usage: x509.ExtKeyUsageServerAuth, into: &b.Serving,
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			ips: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, serviceIP},
		},
		{name: "admin", cn: "localkube-admin", groups: []string{"system:masters"}, usage: client, into: &b.Admin},
		{name: "controller-manager", cn: "system:kube-controller-manager", usage: client, into: &b.ControllerManager},
		{name: "scheduler", cn: "system:kube-scheduler", usage: client, into: &b.Scheduler},
		{name: "nodes", cn: "localkube-nodes", groups: []string{"system:masters"}, usage: client, into: &b.Nodes},
	}
}

// authority is the certificate authority in memory.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func ensureCA(dir string, now time.Time, b *Bundle) (*authority, error) {
	b.CA = pairIn(dir, "ca")
	cert, key, ok := readPair(b.CA)
	if ok && cert.IsCA && now.Add(caMargin).Before(cert.NotAfter) {
		return &authority{cert, key}, nil
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localkube-ca"},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(caLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	cert, key, err := issue(b.CA, template, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	b.Renewed = append(b.Renewed, "ca")
	return &authority{cert, key}, nil
}

func ensureLeaf(dir string, ca *authority, l leaf, now time.Time, b *Bundle) error {
	*l.into = pairIn(dir, l.name)
	if cert, _, ok := readPair(*l.into); ok && l.satisfiedBy(cert, ca.cert, now) {
		return nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: l.cn, Organization: l.groups},
		NotBefore:   now.Add(-backdate),
		NotAfter:    now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{l.usage},
		DNSNames:    l.dns,
		IPAddresses: l.ips,
	}
	if _, _, err := issue(*l.into, template, ca); err != nil {
		return fmt.Errorf("certificate %s: %w", l.name, err)
	}
	b.Renewed = append(b.Renewed, l.name)
	return nil
}

// satisfiedBy tells whether an existing certificate still does what the
// request asks: same subject and names, signed by this authority, not yet in
// its renewal margin.
func (l leaf) satisfiedBy(cert, ca *x509.Certificate, now time.Time) bool {
	return cert.CheckSignatureFrom(ca) == nil &&
		now.Add(leafMargin).Before(cert.NotAfter) &&
		cert.Subject.CommonName == l.cn &&
		slices.Equal(cert.Subject.Organization, l.groups) &&
		slices.Equal(cert.DNSNames, l.dns) &&
		slices.EqualFunc(cert.IPAddresses, l.ips, net.IP.Equal) &&
		slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{l.usage})
}

// issue makes a new key, signs the template with it (by the authority, or by
// itself where there is none) and stores both.
func issue(files Pair, template *x509.Certificate, ca *authority) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if ca == nil {
		ca = &authority{cert: template, key: key}
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return cert, key, writePair(files, cert, key)
}
