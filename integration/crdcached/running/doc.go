// Package running gives tests a crdcached over the sandbox, as a process of its own, and users that both
// know.
//
// # Usage
//
//	func TestMain(m *testing.M) { running.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		s := running.Start(t, "types: [widgets.example.com]")
//		user := running.NewUser(t, "reader")
//		user.Grant(t, "default", rbacv1.PolicyRule{…})
//		real, ours := user.Config(t), s.As(user.Config(t))
//		…
//	}
//
// A server reads with the rights of a service account, which are those that docs/crdcached.md names, and ends
// with its test.
package running
