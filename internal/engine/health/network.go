// SPDX-License-Identifier: Apache-2.0

package health

// service: only a load balancer is something that has to come about.
func service(f *fields) HealthStatus {
	if f.text("spec", "type") != "LoadBalancer" {
		return healthy("")
	}
	if f.length("status", "loadBalancer", "ingress") == 0 {
		return progressing("waiting for the address of its load balancer")
	}
	return healthy("")
}

func ingress(f *fields) HealthStatus {
	if f.length("status", "loadBalancer", "ingress") == 0 {
		return progressing("waiting for an address")
	}
	return healthy("")
}
