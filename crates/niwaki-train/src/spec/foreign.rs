//! What other trainers call our keys.

/// Keys as other trainers write them, and where the spec has what they set.
const FOREIGN: &[(&str, &[&str])] = &[
    ("optimiser.rate", &["learning_rate", "lr", "actor_lr", "step_size"]),
    (
        "update.reuse",
        &[
            "num_iterations",
            "ppo_epochs",
            "num_ppo_epochs",
            "n_epochs",
            "num_epochs",
            "epochs",
            "update_epochs",
        ],
    ),
    ("update.minibatches", &["num_minibatches", "num_mini_batches", "n_minibatches"]),
    (
        "update.clip",
        &["epsilon", "clip_range", "cliprange", "clip_ratio", "clip_coef", "clip_eps", "clip_param"],
    ),
    ("update.clip_high", &["epsilon_high", "clip_ratio_high"]),
    ("update.correction", &["loss_type", "loss_mode", "loss", "policy_loss"]),
    ("update.entropy", &["ent_coef", "entropy_coef", "entropy_coeff"]),
    ("update.reference_kl", &["beta", "kl_coef", "kl_loss_coef"]),
    ("update.value", &["vf_coef", "value_loss_coef"]),
    ("optimiser.clip_norm", &["max_grad_norm", "grad_clip", "clip_grad"]),
    ("rollout.lanes", &["batch_size", "train_batch_size", "num_envs", "n_envs", "num_trajectories"]),
    ("rollout.group", &["num_generations", "group_size", "rollout_n"]),
    ("advantage.lambda", &["gae_lambda", "lam"]),
    ("iterations", &["num_updates", "total_iterations", "max_steps", "total_training_steps"]),
];

/// Our key for another trainer's; in which table it was written does not matter.
pub(super) fn foreign(key: &str) -> Option<&'static str> {
    let key = key.to_lowercase();
    FOREIGN.iter().find(|(_, theirs)| theirs.contains(&key.as_str())).map(|(ours, _)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    #[test]
    fn every_key_of_ours_is_one_and_takes_what_others_call_it() {
        for (ours, theirs) in FOREIGN {
            // A key that does not exist is refused by its name; a value of the wrong kind is another refusal.
            let refusal = Spec::read("x", "", &[format!("{ours}=[[]]")]).unwrap_err().to_string();
            assert!(!refusal.contains("unknown key"), "{ours}: {refusal}");
            for key in *theirs {
                let refusal = Spec::read("x", "", &[format!("{key}=1")]).unwrap_err().to_string();
                assert_eq!(
                    refusal,
                    format!("{key}=1: unknown key '{key}'; niwaki's name for it is '{ours}'")
                );
            }
        }
        assert_eq!(foreign("Learning_Rate"), Some("optimiser.rate"));
        assert_eq!(foreign("rate"), None);
    }
}
