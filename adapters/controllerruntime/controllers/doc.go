// Package controllers starts, changes and stops controllers while a program runs, for types that are known
// only then, and that need not be installed: the kinds of a policy, a package or a template. The instances of
// a controller can select the objects that they depend on.
//
//	all, err := controllers.New(manager, controllers.Options{}) // its cache: controllerruntime.NewCache
//	err = all.Ensure(ctx, "widgets", controllers.Settings{
//		For:        controllers.Watch{Type: widgets},
//		Reconciler: reconciler,
//	})
//	err = all.Select("widgets", secrets, request.NamespacedName, controllers.Objects{Labels: selector})
//	err = all.Stop(ctx, "widgets")
//
// docs/run-time-types.md describes the behavior.
package controllers
