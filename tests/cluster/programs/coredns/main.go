// Command coredns is CoreDNS with the few plugins that the test cluster's DNS needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

func init() {
	// The order in which plugins see a query. CoreDNS knows no others than these.
	dnsserver.Directives = []string{"reload", "errors", "health", "ready", "cache", "kubernetes"}
}

func main() { coremain.Run() }
