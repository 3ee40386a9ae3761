"""Plans on a device: `kernels` has their shaders compiled, `memory` is what they run in, `record`
makes lists of dispatches of their steps once, `execute` has these done at each call, `program` is
what is called."""
