// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"github.com/weir-gitops/weir/localkube/internal/atomicfile"
)

// New ports come from this range: below the one from which Linux and darwin
// take the local ports of outgoing connections, so that a port is not taken by
// chance while the cluster is down.
const (
	firstPort = 20000
	lastPort  = 29999
	portTries = 200
)

var errNoPort = errors.New("no free port on 127.0.0.1")

// ports are the TCP ports of one cluster, all on 127.0.0.1.
type ports struct {
	APIServer         int `json:"apiServer"`
	ControllerManager int `json:"controllerManager"`
	Scheduler         int `json:"scheduler"`
}

// choosePorts keeps each earlier port that is free and replaces the others.
// Between this look and the moment a component binds its port, another program
// could take it; the component then ends with that message in its log.
func choosePorts(earlier ports) (ports, error) {
	chosen := earlier
	taken := map[int]bool{}
	for _, port := range []*int{&chosen.APIServer, &chosen.ControllerManager, &chosen.Scheduler} {
		for try := 0; *port == 0 || taken[*port] || !isFree(*port); try++ {
			if try == portTries {
				return ports{}, errNoPort
			}
			*port = firstPort + rand.IntN(lastPort-firstPort+1)
		}
		taken[*port] = true
	}
	return chosen, nil
}

func isFree(port int) bool {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// readPorts reads the ports of the last run; a folder without any gives zeros.
func readPorts(file string) (ports, error) {
	var p ports
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("ports of the last run: %w", err)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("ports of the last run, %s (remove it to choose new ones): %w", file, err)
	}
	return p, nil
}

func writePorts(file string, p ports) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(data, '\n'), 0o600)
}
