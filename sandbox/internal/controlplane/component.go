package controlplane

import "fmt"

// Component is one of the two processes of a sandbox.
type Component string

// The components.
const (
	Etcd      Component = "etcd"
	APIServer Component = "apiserver"
)

// ParseComponent turns a command-line argument into a Component.
func ParseComponent(s string) (Component, error) {
	switch c := Component(s); c {
	case Etcd, APIServer:
		return c, nil
	default:
		return "", fmt.Errorf("unknown component %q: want %q or %q", s, Etcd, APIServer)
	}
}
