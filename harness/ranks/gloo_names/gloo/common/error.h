// Stands for Gloo's header: see harness/ranks/gloo_names/gloo/context.h.
#pragma once
